"""Reports: tables, figures and pages of an experiment."""
