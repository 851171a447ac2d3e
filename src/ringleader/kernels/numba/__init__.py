"""The compiled backend. ``backend.py`` gives the pieces of work to the kernels of the other files:

- ``blocks.py``   the blocks of entities and of lambda; ``dual.py``: those of few entries
- ``sums.py``     gathering the entries of a block, and their sums; ``solve.py``: its small solver and its step
- ``entries.py``  negatives, groupings, log-odds and likelihoods
- ``pairs.py``    who meets whom; ``topics.py``: a pass of a topic model
- ``work.py``     what one task of a kernel works on, and its memory
- ``lanes.py``    four numbers at a time, and pointers, for the files above; ``elementary.py``: functions of them

Only ``kernels.protocol`` imports this package, when the backend is asked for: importing it imports numba.
"""
