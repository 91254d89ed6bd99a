// What is chosen, seen from a step: one rule for the ribbon, the lists and the charts.

// The nodes to mark: the chosen one, or those whose router chose the chosen expert.
export function markedNodes({ step }, { node, expert }) {
  if (node !== null) return [node];
  if (!expert) return [];
  return [...new Set(step.routing.filter((routing) => routesTo(routing, expert)).map((routing) => routing.node ?? 0))];
}

// Whether a step used an expert.
export function usesExpert({ step }, expert) {
  return Boolean(expert) && step.routing.some((routing) => routesTo(routing, expert));
}

// Whether the chosen node, where one is chosen, was routed to an expert.
export function isExpertOf({ step }, { node }, expert) {
  return node !== null && step.routing.some((routing) => routing.node === node && routesTo(routing, expert));
}

export function isSameExpert(one, other) {
  return Boolean(one) && Boolean(other) && one.site === other.site && one.index === other.index;
}

function routesTo({ site, selected }, expert) {
  return site === expert.site && selected.includes(expert.index);
}
