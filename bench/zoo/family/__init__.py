"""family - networks of other families than the zoo's own, which ../families.py writes: a module has a
function for each, of the network's name, and lists them in NETWORKS."""
