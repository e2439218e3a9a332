/** Temporarily replaced properties of an object. */
export class PropertyOverrides {
  readonly #target: object;
  readonly #replaced = new Map<PropertyKey, { ours: PropertyDescriptor; before?: PropertyDescriptor }>();

  constructor(target: object) {
    this.#target = target;
  }

  /** Replaces a property on the object itself, so that assignments and `undo` still work. */
  define(name: PropertyKey, descriptor: PropertyDescriptor): void {
    const before = this.#replaced.get(name)?.before ?? Object.getOwnPropertyDescriptor(this.#target, name);
    const ours = { configurable: true, enumerable: true, ...descriptor };
    Object.defineProperty(this.#target, name, ours);
    this.#replaced.set(name, before === undefined ? { ours } : { ours, before });
  }

  /** Restores every property, except those that were replaced again since. */
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
