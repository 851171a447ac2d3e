"""A checked relation -> ``SparseTensor`` with its vocabularies.

``encode.read_reviews`` reads and encodes, ``merge.merge`` joins two tensors in one set of codes, ``roles.assign_roles``
says who acts, on what, when, and on which side of the rating scale.
"""
