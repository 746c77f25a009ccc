/** The search tree of a beam search: what the server says, and where each node stands. */

import type { Node, Tree } from '../../lib/views';

export const BOX = { wide: 88, high: 36, across: 122, down: 42 };

export interface Placed {
  nodes: (Node & { x: number; y: number; slot: number })[];
  columns: number[][];
  width: number;
  height: number;
}

/** A column a step; in it the candidates in the order of what they continue, so that few lines cross. */
export function place(tree: Tree): Placed {
  const columns: number[][] = [];
  for (const node of tree.nodes) (columns[node.depth] ??= []).push(node.id);
  const slot: number[] = [];
  for (const column of columns) {
    column.sort((a, b) => {
      const [one, other] = [tree.nodes[a]!, tree.nodes[b]!];
      return (slot[one.parent ?? 0] ?? 0) - (slot[other.parent ?? 0] ?? 0) || other.total - one.total;
    });
    column.forEach((id, i) => (slot[id] = i));
  }
  const most = Math.max(...columns.map((column) => column.length));
  const nodes = tree.nodes.map((node) => ({
    ...node,
    slot: slot[node.id]!,
    x: 8 + node.depth * BOX.across,
    y: 8 + (slot[node.id]! + (most - columns[node.depth]!.length) / 2) * BOX.down,
  }));
  return { nodes, columns, width: 16 + (columns.length - 1) * BOX.across + BOX.wide, height: 16 + most * BOX.down };
}

/** The ids from the root to this node. */
export function way(tree: Tree, id: number): number[] {
  const ids: number[] = [];
  for (let at: number | null = id; at !== null; at = tree.nodes[at]?.parent ?? null) ids.unshift(at);
  return ids;
}

export function edge(from: { x: number; y: number }, to: { x: number; y: number }): string {
  const [x1, y1, x2, y2] = [from.x + BOX.wide, from.y + BOX.high / 2, to.x, to.y + BOX.high / 2];
  return `M${x1} ${y1}C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`;
}
