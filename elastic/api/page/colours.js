// A node keeps its colour while others come and go: it follows from its name alone where that ends in a number.

const COLOURS = 16;
const others = new Map();

export const colourOf = (node) => {
  const number = /(\d+)$/.exec(node);
  if (number) return `n${((Number(number[1]) + COLOURS - 1) % COLOURS) + 1}`;
  if (!others.has(node)) others.set(node, others.size % COLOURS + 1);
  return `n${others.get(node)}`;
};
