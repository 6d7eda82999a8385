"""Other libraries: use their explainers here, and holdfast explainers and criteria there."""
