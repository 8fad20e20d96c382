"""Ways to compute the gradients that an algorithm asks for, each the others' twin.

``paths`` names them; nothing outside ``training`` need know which one a run takes.
"""
