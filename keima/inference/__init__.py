"""Network → fast evaluator: backends (PyTorch, OpenVINO), batches, symmetries, legal moves."""
