"""Charts of the notebooks: plain values in, a Plotly figure out. Nothing in here computes what it shows."""
