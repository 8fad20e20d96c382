"""Ratios measured side by side: ours, the plain loop and its compiled form taking turns in one process."""
