"""The trial directory: episode rows, traces, locks and their verification."""
