"""The parts on Azure Functions: what its host loads, and what is done when it calls.

`function_app.py` and `host.json` go to the top of the package that is deployed; the same package serves every part.
"""
