"""Files and tables in memory -> a checked relation, and its rows as codes. The only package that writes SQL.

``read.open_relation`` opens, ``check.check`` says which rows can be used and why others cannot, ``coding.Coding`` codes
their values. ``rows.table_rows`` reads small side tables such as labels.
"""
