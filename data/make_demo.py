"""Write data/demo: the simulated job that README and the doctests use."""

from pathlib import Path

from htagraph.simulate import demo_job, simulate


def main() -> None:
    """Simulate the demo job and write its traces and its truth."""
    for path in simulate(demo_job()).write(Path(__file__).parent / "demo", level=9):
        print(path)


if __name__ == "__main__":
    main()
