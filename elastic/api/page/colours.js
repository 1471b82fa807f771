// The colour of a node depends on its name alone if that ends in a number, so it stays when other nodes join or leave.

const COLOURS = 16;
const others = new Map();

export const colourOf = (node) => {
  const number = /(\d+)$/.exec(node);
  if (number) return `n${((Number(number[1]) + COLOURS - 1) % COLOURS) + 1}`;
  if (!others.has(node)) others.set(node, others.size % COLOURS + 1);
  return `n${others.get(node)}`;
};
