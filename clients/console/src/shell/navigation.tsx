import { Link, useLocation } from "wouter";
import { useSession } from "../session/session.ts";
import { linksFor } from "./links.ts";
import styles from "./navigation.module.css";

/** The links to the role's screens. */
export function Navigation() {
  const { role } = useSession();
  const [location] = useLocation();
  return (
    <nav className={styles.navigation} aria-label="Screens">
      <ul>
        {linksFor(role).map(({ href, label }) => (
          <li key={href}>
            <Link href={href} aria-current={isCurrent(href, location) ? "page" : undefined}>
              {label}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function isCurrent(href: string, location: string): boolean {
  return location === href || (href !== "/" && location.startsWith(`${href}/`));
}
