/** The actions of audit events that are not RPCs: the console's sessions, and commands of the server. */
export const ACTIONS_WITHOUT_RPC: readonly string[] = [
  "SignIn",
  "SignOut",
  "SignOutEverywhere",
  "ExportTenant",
  "ImportTenant",
  "RenewInstallation",
];
