"""What people see: tables that fit, times, and text that cannot do anything to their terminal."""
