"""What starts the parts: loops, threads and the waiting between them live here and nowhere else."""
