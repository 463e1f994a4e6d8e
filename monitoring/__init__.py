"""What a person sees of a running pipeline: metrics, alerts, dashboards, and the live page.

Admission rule: code that shows. It decides nothing, and no part's results depend on it.
"""
