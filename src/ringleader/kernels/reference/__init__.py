"""The meaning of every operation of a backend in plain NumPy, slow and clear; the oracle of the contract tests.

``backend.py`` is the backend that runs it. Nothing else imports this package but tests.
"""
