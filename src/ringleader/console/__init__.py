"""The console: a local web application in which people look, decide, and see the model learn from it.

``app`` assembles it, ``server`` runs it, ``decisions`` keeps what people decide. Modules are imported where they are
needed: FastAPI and uvicorn come with the extra ``console``, and the decisions are read without them.
"""
