"""What guards the project: workflows, exact pins, baselines, canaries, and the proof that the guard works."""
