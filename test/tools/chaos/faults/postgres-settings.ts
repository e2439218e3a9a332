import { type Fault, last } from "./fault.ts";
import { END_BACKENDS } from "./postgres-process.ts";

/** Faults of settings that others give the service's database or its role. */
export const POSTGRES_SETTING_FAULTS: readonly Fault[] = [
  {
    // Changes no token, no time and no number: to 15 digits, the tokens of a millisecond are equal.
    name: "postgres-float-digits",
    target: "postgres",
    async inject(scene) {
      const { postgres } = scene.rig;
      const [{ name } = { name: "" }] = await postgres.query<{ name: string }>(
        "select quote_ident(current_database()) as name",
      );
      const whose = scene.random.below(2) === 0 ? `database ${name}` : "role current_user";
      await postgres.query(`alter ${whose} set extra_float_digits = 0`);
      // Only new connections have it.
      await postgres.query(END_BACKENDS);
      await last(scene, 2000, 5000);
      await postgres.query(`alter ${whose} reset extra_float_digits`);
      await postgres.query(END_BACKENDS);
    },
  },
];
