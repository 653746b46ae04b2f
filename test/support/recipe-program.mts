// Loaded before the samples of docs/recipes.md in TypeScript: what they print goes to the test, and they wait for what others do.
const send = (message: object) => process.send?.(message);
let go: () => void = () => undefined;
process.on('message', () => go());

/** Resolves when the test says so. */
const wait = (message: object): Promise<void> =>
  new Promise((resolve) => {
    go = resolve;
    send(message);
  });

console.log = (...values: unknown[]) => send({ printed: values });
Object.assign(globalThis, {
  meanwhile: (mark: string) => wait({ meanwhile: mark }),
  recipeEnds: (title: string) => wait({ ends: title }),
});
