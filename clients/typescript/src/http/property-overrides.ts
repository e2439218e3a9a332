/** Properties of an object that are replaced for a while. */
export class PropertyOverrides {
  readonly #target: object;
  readonly #replaced = new Map<PropertyKey, { ours: PropertyDescriptor; before?: PropertyDescriptor }>();

  constructor(target: object) {
    this.#target = target;
  }

  /** Replaces a property of the object itself, so that assignments and `undo` are still possible. */
  define(name: PropertyKey, descriptor: PropertyDescriptor): void {
    const before = this.#replaced.get(name)?.before ?? Object.getOwnPropertyDescriptor(this.#target, name);
    const ours = { configurable: true, enumerable: true, ...descriptor };
    Object.defineProperty(this.#target, name, ours);
    this.#replaced.set(name, before === undefined ? { ours } : { ours, before });
  }

  /** Restores every property, except for those that others have replaced since. */
  undo(): void {
    for (const [name, { ours, before }] of this.#replaced) {
      const now = Object.getOwnPropertyDescriptor(this.#target, name);
      if (now === undefined || now.value !== ours.value || now.get !== ours.get) continue;
      if (before === undefined) Reflect.deleteProperty(this.#target, name);
      else Object.defineProperty(this.#target, name, before);
    }
    this.#replaced.clear();
  }
}
