"""What is stored of runs, and what may be trusted of it."""
