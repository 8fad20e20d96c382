"""Tables, figures and claims of the five papers: the runs each needs, what it reads from them, its drawing."""
