"""What is Azure SQL's alone: its address, how it is signed in to, its driver, and what its server says."""
