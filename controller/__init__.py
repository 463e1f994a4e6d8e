"""The controller: collect, evaluate, decide, realise, one small module each. `service` is their loop.

Admission rule: code that turns the telemetry of a query into its plans. Policies are pure and live in
`evenflow.elasticity`. Only `service`, `memory` and `realise` talk to Kafka, and only `kubernetes` talks to an
API server.
"""
