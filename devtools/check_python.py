"""Says clearly why a Python cannot be used. It runs on that Python, so it is written for any, even Python 2."""

import sys

NEEDED = (3, 11)

problem = ""
if sys.version_info < NEEDED:
    problem = "is Python {}.{}; matoolkit needs {}.{} or newer".format(*(tuple(sys.version_info[:2]) + NEEDED))
else:
    try:
        __import__("ensurepip")
        __import__("venv")
    except ImportError as error:
        problem = "cannot make virtual environments ({}); on Debian and Ubuntu, install python3-venv".format(
            *error.args
        )

if problem:
    sys.exit("Error: " + sys.executable + " " + problem + ".\nChoose another one with: make PYTHON=python3.12 ...")
