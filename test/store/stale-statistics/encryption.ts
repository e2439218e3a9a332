import { expect } from "vitest";
import { NO_KEYS, parseKeyring } from "../../../server/src/config/keyring.ts";
import {
  advanceEncryptionPass,
  beginEncryptionPass,
  takeEncryptionPage,
} from "../../../server/src/encryption/encryption-pass.ts";
import { countKeyUsage } from "../../../server/src/encryption/key-usage.ts";
import { createRecordEncryption } from "../../../server/src/encryption/record-encryption.ts";
import { reencryptPage } from "../../../server/src/encryption/reencrypt-records.ts";
import { CROWDED_TENANT } from "../../support/database/crowded-tables.ts";
import { encryptionKeys } from "../../support/servers/encryption.ts";
import type { ExplainedWork } from "./explained-work.ts";
import { BATCH_ROWS } from "./rows.ts";

const ENCRYPTION = createRecordEncryption(
  parseKeyring(encryptionKeys(1).ONCEWARD_ENCRYPTION_KEYS ?? "") ?? NO_KEYS,
  () => {},
);

/** The whole installation, in one page. */
const ONE_PAGE = { examined: 1, changed: 1, skipped: 0, unreadable: 0, after: undefined };

/** Statements of encryption at rest. */
export const ENCRYPTION_WORK: ExplainedWork = {
  byKeys: {
    "encrypt a page": (pool) =>
      pool.transaction((transaction) =>
        reencryptPage(
          transaction,
          ENCRYPTION,
          { tenantId: CROWDED_TENANT, namespace: "charges", key: "" },
          BATCH_ROWS,
        ),
      ),
    "encrypt all records page by page": async (pool) => {
      await beginEncryptionPass(pool, 1);
      await pool.transaction(async (transaction) => {
        expect(await takeEncryptionPage(transaction, 1)).toMatchObject({ tenantId: 0 });
        await advanceEncryptionPass(transaction, ONE_PAGE, 0);
      });
    },
  },
  overARange: {
    "count records by encryption key": countKeyUsage,
  },
  onOneRow: ["read_encryption_pass"],
};
