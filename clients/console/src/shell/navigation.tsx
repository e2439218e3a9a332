import { Link, useLocation } from "wouter";
import { formatCount } from "../format/quantity.ts";
import { useAmbiguousCount, useUnfinishedJobs } from "../parts/work-counts.ts";
import { linksFor } from "../routes.ts";
import { useSession } from "../session/session.ts";
import styles from "../styles/shell.module.css";

/** The links to the role's screens, in groups by what a person comes for. */
export function Navigation() {
  const { role } = useSession();
  const [location] = useLocation();
  if (role === "CALLER") return undefined;
  const links = linksFor(role);
  const groups = [...new Set(links.map(({ group }) => group))];
  return (
    <nav className={styles.navigation} aria-label="Screens">
      {groups.map((group) => (
        <section key={group} aria-label={group}>
          <p className={styles.group}>{group}</p>
          <ul>
            {links
              .filter((link) => link.group === group)
              .map(({ href, label }) => (
                <li key={href}>
                  <Link
                    href={href}
                    {...(isCurrent(href, location) && { "aria-current": "page", ref: scrollTo })}
                  >
                    {label}
                    {href === "/ambiguous" && <AmbiguousCount />}
                    {href === "/jobs" && <JobCount />}
                  </Link>
                </li>
              ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}

/** Scrolls the links so that one is seen: in a narrow window they are a line that can be longer than the window. */
function scrollTo(link: HTMLElement | null): void {
  const bar = link?.closest("nav");
  if (!link || !bar) return;
  const [seen, own] = [bar.getBoundingClientRect(), link.getBoundingClientRect()];
  if (own.left < seen.left || own.right > seen.right) bar.scrollLeft += own.left - seen.left;
}

/** How many records wait for a person. */
function AmbiguousCount() {
  const { namespaces } = useSession();
  const { data } = useAmbiguousCount(namespaces[0] ?? "");
  return <Count of={data?.ambiguous ?? 0n} isLowerBound={data?.isLowerBound === true} />;
}

/** How many jobs change records now. */
function JobCount() {
  return <Count of={useUnfinishedJobs().data?.length ?? 0} />;
}

/** A count of work; nothing if there is none. */
function Count({
  of,
  isLowerBound = false,
}: {
  readonly of: number | bigint;
  readonly isLowerBound?: boolean;
}) {
  if (Number(of) === 0) return undefined;
  return <span className={styles.count}>{` ${formatCount(of)}${isLowerBound ? "+" : ""}`}</span>;
}

function isCurrent(href: string, location: string): boolean {
  return location === href || (href !== "/" && location.startsWith(`${href}/`));
}
