"""Numbers: arrays in, arrays out. The only place where loops over entries live.

- ``protocol.py``      the ``Backend`` protocol, and ``get_backend(name)``
- ``layout.py``        the arrays that travel together, and how work is cut into pieces; ``pair_layout.py``: of pairs
- ``checks.py``        do the arrays of a call fit together
- ``single_block.py``  one block in NumPy: lambda and the heads; ``entries.py``: entries written out; ``logistic.py``
- ``tiles.py``         matrix algebra of the heads, in tiles; ``tree.py``: sums along a fixed tree
- ``host_arrays.py``   where the arrays of a fit live on backends of the CPU
- ``reference/``       the specification of every operation in plain NumPy, and the oracle of the tests
- ``numba/``           the compiled backend; ``cuda/``: that of a GPU

An *entry* is one tuple of codes with y = 1 (an observed cell) or y = 0 (a negative of a cell, which
differs from it in the contrast mode alone). Every entity is owned by one thread and long lists are
cut into chunks of a fixed size, so the answer does not depend on the number of threads.
"""
