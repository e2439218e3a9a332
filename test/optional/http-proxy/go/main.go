// A service that knows nothing of idempotency keys: main PORT.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
)

func main() {
	var lock sync.Mutex
	charges := []any{}
	http.HandleFunc("POST /charges", func(w http.ResponseWriter, r *http.Request) {
		var order map[string]any
		if err := json.NewDecoder(r.Body).Decode(&order); err != nil || order["amount"] == "invalid" {
			http.Error(w, "amount", http.StatusUnprocessableEntity)
			return
		}
		lock.Lock()
		charges = append(charges, order)
		number := len(charges)
		lock.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", fmt.Sprintf("/charges/%d", number))
		http.SetCookie(w, &http.Cookie{Name: "session", Value: fmt.Sprint(number)})
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id":%d}`, number)
	})
	http.HandleFunc("GET /charges", func(w http.ResponseWriter, _ *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		json.NewEncoder(w).Encode(charges)
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
