"""Other methods, for comparison: block finders, factorisations, classifiers, propagation.

``registry`` names them and makes one by name; ``method`` is the interface they share. Each method has a module.
"""
