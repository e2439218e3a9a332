// A service behind Fiber's middleware "idempotency": main PORT.
package main

import (
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/idempotency"
)

func main() {
	var effects atomic.Int64
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Get("/count", func(c *fiber.Ctx) error { return c.SendString(strconv.FormatInt(effects.Load(), 10)) })
	app.Use(idempotency.New(idempotency.Config{KeyHeader: "Idempotency-Key"}))
	charge := func(c *fiber.Ctx) error {
		if c.Get("x-fail") != "" {
			// An error, which the middleware does not store.
			return fiber.ErrServiceUnavailable
		}
		var body struct{ Amount any }
		if err := c.BodyParser(&body); err != nil || body.Amount == "invalid" {
			return fiber.ErrUnprocessableEntity
		}
		time.Sleep(20 * time.Millisecond)
		id := strconv.FormatInt(effects.Add(1), 10)
		c.Cookie(&fiber.Cookie{Name: "session", Value: id})
		c.Location("/charges/" + id)
		return c.Status(201).JSON(map[string]string{"id": id})
	}
	for _, path := range []string{"/charges", "/refunds"} {
		app.Post(path, charge)
		app.Put(path, charge)
	}
	if err := app.Listen("127.0.0.1:" + os.Args[1]); err != nil {
		panic(err)
	}
}
