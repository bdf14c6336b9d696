"""The boundary where text becomes values: the policy language, and files of snapshots, forecasts and decisions."""
