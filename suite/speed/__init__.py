"""How fast updates are, and whether they stay so."""
