"""`python -m matoolkit` is `matoolkit`."""

from matoolkit.cli.main import main

if __name__ == "__main__":
    main(prog_name="matoolkit")
