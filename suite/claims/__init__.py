"""What a paper prints, what we measured, and the one judge between them.

Imports ``spec`` alone; anything above may import it.
"""
