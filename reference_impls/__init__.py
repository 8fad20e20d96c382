"""One readable file per paper: update rules in the paper's symbols, told gradients, free of any machinery."""
