"""Tables, figures and claims of the five papers: the runs each needs, what it reads, how it is drawn."""
