// Places the tasks of a graph in layers: what a task waits for stands left of it.
//
// Invariants:
// - The same graph gets the same places, in whatever order its tasks come.
// - A cycle ends the search for layers; it never hangs the page.

export interface GraphEdge {
  /** Stands left. */
  first: string;
  /** Stands right. */
  then: string;
}

export interface PlacedNode {
  id: string;
  x: number;
  y: number;
}

export interface PlacedEdge extends GraphEdge {
  /** From the right side of the first node to the left side of the other one. */
  points: { x: number; y: number }[];
}

export interface GraphLayout {
  nodes: PlacedNode[];
  edges: PlacedEdge[];
  width: number;
  height: number;
}

export const NODE_WIDTH = 208;
export const NODE_HEIGHT = 76;
const LAYER_GAP = 64;
const NODE_GAP = 16;
/** The height of a place that only an edge passes. */
const PASSAGE_HEIGHT = 12;
const ORDER_SWEEPS = 8;

/** A node, or a place that an edge over more than one layer passes. */
interface Cell {
  id: string;
  isPassage: boolean;
  left: Cell[];
  right: Cell[];
}

/** Returns the layer of each node: one more than the largest layer of what stands left of it. */
export function assignLayers(ids: string[], edges: GraphEdge[]): Map<string, number> {
  const waits = new Map<string, string[]>(ids.map((id) => [id, []]));
  for (const { first, then } of edges) waits.get(then)?.push(first);
  const layers = new Map<string, number>();
  const inProgress = new Set<string>();
  const layerOf = (id: string): number => {
    const known = layers.get(id);
    if (known !== undefined) return known;
    if (inProgress.has(id)) return 0;
    inProgress.add(id);
    const before = (waits.get(id) ?? []).map(layerOf);
    inProgress.delete(id);
    const layer = before.length === 0 ? 0 : Math.max(...before) + 1;
    layers.set(id, layer);
    return layer;
  };
  ids.forEach(layerOf);
  pullRootsRight(ids, edges, layers);
  return layers;
}

/** Moves nodes that wait for nothing next to the first node that waits for them. */
function pullRootsRight(ids: string[], edges: GraphEdge[], layers: Map<string, number>): void {
  const hasLeft = new Set(edges.map(({ then }) => then));
  for (const id of ids.filter((other) => !hasLeft.has(other))) {
    const after = edges.filter(({ first }) => first === id).map(({ then }) => layers.get(then) ?? 1);
    if (after.length > 0) layers.set(id, Math.max(0, Math.min(...after) - 1));
  }
}

interface LayeredCells {
  columns: Cell[][];
  nodes: Map<string, Cell>;
  /** The cells of an edge, from left to right. */
  paths: { edge: GraphEdge; cells: Cell[] }[];
}

function connect(left: Cell, right: Cell): void {
  left.right.push(right);
  right.left.push(left);
}

function buildCells(ids: string[], edges: GraphEdge[]): LayeredCells {
  const layers = assignLayers(ids, edges);
  const columns: Cell[][] = [];
  const add = (layer: number, id: string, isPassage: boolean): Cell => {
    const cell: Cell = { id, isPassage, left: [], right: [] };
    (columns[layer] ??= []).push(cell);
    return cell;
  };
  const nodes = new Map(ids.map((id) => [id, add(layers.get(id) ?? 0, id, false)]));
  const paths = edges.flatMap((edge) => {
    const [first, then] = [nodes.get(edge.first), nodes.get(edge.then)];
    const [from, to] = [layers.get(edge.first) ?? 0, layers.get(edge.then) ?? 0];
    if (first === undefined || then === undefined || to <= from) return [];
    const cells = [first];
    for (let layer = from + 1; layer < to; layer += 1) cells.push(add(layer, `${edge.first} ${edge.then}`, true));
    cells.push(then);
    cells.slice(1).forEach((cell, index) => connect(cells[index] as Cell, cell));
    return [{ edge, cells }];
  });
  return { columns: Array.from(columns, (column) => column ?? []), nodes, paths };
}

/** Orders each layer by the middle of the neighbours, from both sides in turn, which undoes most crossings. */
function orderColumns(columns: Cell[][]): void {
  const rank = new Map<Cell, number>();
  const number = (column: Cell[]) => column.forEach((cell, index) => rank.set(cell, index));
  columns.forEach(number);
  for (let sweep = 0; sweep < ORDER_SWEEPS; sweep += 1) {
    const fromLeft = sweep % 2 === 0;
    const order = fromLeft ? columns : [...columns].reverse();
    for (const column of order) {
      const middle = new Map(
        column.map((cell) => {
          const neighbours = fromLeft ? cell.left : cell.right;
          const sum = neighbours.reduce((total, other) => total + (rank.get(other) ?? 0), 0);
          return [cell, neighbours.length === 0 ? (rank.get(cell) ?? 0) : sum / neighbours.length];
        }),
      );
      column.sort((a, b) => (middle.get(a) ?? 0) - (middle.get(b) ?? 0) || (rank.get(a) ?? 0) - (rank.get(b) ?? 0));
      number(column);
    }
  }
}

function cellHeight(cell: Cell): number {
  return cell.isPassage ? PASSAGE_HEIGHT : NODE_HEIGHT;
}

function columnHeight(column: Cell[]): number {
  return column.reduce((sum, cell) => sum + cellHeight(cell) + NODE_GAP, -NODE_GAP);
}

export function layOutGraph(ids: string[], edges: GraphEdge[]): GraphLayout {
  // Numbers in names sort as numbers, so that T2 stands above T10.
  const sorted = [...ids].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const { columns, nodes, paths } = buildCells(sorted, edges);
  orderColumns(columns);
  const height = Math.max(NODE_HEIGHT, ...columns.map(columnHeight));
  const places = new Map<Cell, { x: number; y: number }>();
  columns.forEach((column, layer) => {
    let y = (height - columnHeight(column)) / 2;
    for (const cell of column) {
      places.set(cell, { x: layer * (NODE_WIDTH + LAYER_GAP), y });
      y += cellHeight(cell) + NODE_GAP;
    }
  });
  const placeOf = (cell: Cell) => places.get(cell) ?? { x: 0, y: 0 };
  return {
    nodes: [...nodes].map(([id, cell]) => ({ id, ...placeOf(cell) })),
    edges: paths.map(({ edge, cells }) => ({
      ...edge,
      points: cells.flatMap((cell, index) => {
        const { x, y } = placeOf(cell);
        const middle = y + cellHeight(cell) / 2;
        const [left, right] = [{ x, y: middle }, { x: x + NODE_WIDTH, y: middle }];
        if (index === 0) return [right];
        return index === cells.length - 1 ? [left] : [left, right];
      }),
    })),
    width: Math.max(1, columns.length) * (NODE_WIDTH + LAYER_GAP) - LAYER_GAP,
    height,
  };
}

/** Draws an edge as a line that leaves and arrives level. */
export function edgePath(points: { x: number; y: number }[]): string {
  const [start, ...rest] = points;
  if (start === undefined) return "";
  let [path, before] = [`M${start.x} ${start.y}`, start];
  for (const point of rest) {
    const middle = (before.x + point.x) / 2;
    path += before.y === point.y ? `H${point.x}` : `C${middle} ${before.y} ${middle} ${point.y} ${point.x} ${point.y}`;
    before = point;
  }
  return path;
}
