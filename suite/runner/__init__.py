"""Computing runs: processes, and how they end."""
