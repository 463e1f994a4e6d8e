"""One file a policy. `evenflow.elasticity.registry` names them."""
