"""What a person sees of a pipeline that runs: metrics, alerts, panels, health pages, log lines."""
