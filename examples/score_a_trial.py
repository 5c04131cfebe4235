"""A log of another lab, imported, scored with intervals, and reported."""

import shutil
from pathlib import Path

from robo_eval.analysis.trial import analyse_trial
from robo_eval.log.importer import import_csv
from robo_eval.log.verify import verify_trial
from robo_eval.report.build import build_report

HERE = Path(__file__).parent
FOLDER = Path("runs/other-lab")


def main() -> None:
    """Import the table anew and say what it shows."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    lab = HERE / "other_lab"
    trial = import_csv(lab / "episodes.csv", lab / "columns.yaml", FOLDER)
    print(f"{len(trial.frame())} episodes; undamaged: {verify_trial(FOLDER).ok}")
    for row in analyse_trial(trial).policies:
        # Success is an Estimate: value, interval, sample size, and why if there is no value.
        print(f"{row.policy}: success {row.success_exact}; {row.coverage.text}")
    print(f"report: {build_report(trial)}")


if __name__ == "__main__":
    main()
