"""The compiled backend. ``backend.py`` gives the pieces of work to the kernels of the other files:

- ``blocks.py``   the blocks of entities and of lambda
- ``sums.py``     gathering the entries of a block, and their sums; ``solve.py``: its small solver and its step
- ``entries.py``  negatives, groupings, log-odds and likelihoods
- ``pairs.py``    who meets whom
- ``lanes.py``    four numbers at a time, and pointers, for the files above

Only ``kernels.protocol`` imports this package, when the backend is asked for: importing it imports numba.
"""
