"""The controller: collect, evaluate, decide, realise, one small module each. `service` is their loop.

Admission rule: what turns the telemetry of a query into its plans. Policies are pure and live in `evenflow.elasticity`.
Kafka is touched by `service`, `memory` and `realise` only. It asks no other service for anything.
"""
