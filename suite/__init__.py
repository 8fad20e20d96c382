"""The harness: everything a paper's algorithm needs from the world, and nothing a paper decides."""
