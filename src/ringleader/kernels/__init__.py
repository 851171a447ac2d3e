"""Numbers: arrays in, arrays out. The only place where loops over entries live.

- ``blocks.py``     the arrays that travel together, and how work is cut into pieces
- ``reference.py``  plain NumPy: the specification of every operation, and the oracle of the tests
- ``numba_blocks.py``   what runs: the blocks of entities and of lambda
- ``numba_sums.py``     gathering the entries of a block, and their sums
- ``numba_solve.py``    the small solver of a block, and its step
- ``numba_entries.py``  what runs: negatives, groupings, log-odds and likelihoods
- ``lanes.py``      four numbers at a time, and pointers, for the four files above
- ``ops.py``        the ``Ops`` protocol, and ``get_ops(name)``

An *entry* is one tuple of codes with y = 1 (an observed cell) or y = 0 (a negative of a cell, which
differs from it in the contrast mode alone). Every entity is owned by one thread and long lists are
cut into chunks of a fixed size, so the answer does not depend on the number of threads.
"""
